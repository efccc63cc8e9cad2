"""Rules for the code that graph mode compiles: another form, a stop, or a finding."""
