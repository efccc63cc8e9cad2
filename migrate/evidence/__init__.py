"""In: the installed frameworks, rows and cases. Out: mappings/facts and mappings/evidence."""
