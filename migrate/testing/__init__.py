"""In: two models, by name. Out: an assertion that they agree, for tests written by hand.

``from migrate.testing.parity import assert_parity``, or the fixture of that name (plugin). Both
frameworks run in processes of their own, as in ``torch2ms verify``.
"""
