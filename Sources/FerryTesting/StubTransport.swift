// For tests.
