"""In: a project's sources. Out: the installed torch packages whose source is converted along."""
