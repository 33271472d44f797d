"""How the book is made: environment, execution, pages. A reader of the book never imports this."""
