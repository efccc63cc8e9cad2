"""New text: spelling of names, substitution in templates, layout, helpers, emission."""
