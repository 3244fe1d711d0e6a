"""Results, comparisons and explanations as people read them: text, pages, charts."""

from findwell.show.document import document_of as document_of
from findwell.show.document import render as render
