"""The error of weight recipes, apart from them because their arithmetic raises it too."""


class RecipeError(Exception):
    """A recipe that is malformed or does not fit the shapes of its parts."""
