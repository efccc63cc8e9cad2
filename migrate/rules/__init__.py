"""In: a reference and its surroundings. Out: an Edit or a Refusal. One topic a file."""
