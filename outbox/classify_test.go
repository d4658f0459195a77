package outbox

import (
	"slices"
	"testing"
)

// The values are data that other programs write and read, so they stand here as text.
var (
	documentedTransient = []string{"red", "limite", "conflicto_idempotencia"}
	documentedPermanent = []string{"credenciales", "rechazado", "facturacion", "plantilla", "numero", "ventana"}
)

func TestClassifyKnowsEveryDocumentedCategory(t *testing.T) {
	for _, category := range documentedTransient {
		if got := Classify(category); got != Transient {
			t.Errorf("%s: got %s, want %s", category, got, Transient)
		}
	}
	for _, category := range documentedPermanent {
		if got := Classify(category); got != Permanent {
			t.Errorf("%s: got %s, want %s", category, got, Permanent)
		}
	}
}

func TestClassifyCallsWhatItDoesNotKnowTransient(t *testing.T) {
	for _, category := range []string{"", "http_404", "smtp_saludo", "Rechazado", " rechazado", "rechazado ", "rechazad"} {
		if got := Classify(category); got != Transient {
			t.Errorf("%q: got %s, want %s", category, got, Transient)
		}
	}
}

func TestListsOfCategoriesAreTheDocumentedSplit(t *testing.T) {
	if got := TransientCategories(); !slices.Equal(got, documentedTransient) {
		t.Errorf("transient: got %q, want %q", got, documentedTransient)
	}
	if got := PermanentCategories(); !slices.Equal(got, documentedPermanent) {
		t.Errorf("permanent: got %q, want %q", got, documentedPermanent)
	}
}

func TestCategoryConstantsHaveTheStoredValues(t *testing.T) {
	constants := []string{Network, Limit, IdempotencyConflict, Credentials, Rejected, Billing, TemplateFault, Number, Window}
	if want := slices.Concat(documentedTransient, documentedPermanent); !slices.Equal(constants, want) {
		t.Errorf("got %q, want %q", constants, want)
	}
}

func TestChangingAListOfCategoriesDoesNotChangeTheRule(t *testing.T) {
	PermanentCategories()[0] = "red"
	TransientCategories()[0] = "x"
	if Classify("red") != Transient || Classify("credenciales") != Permanent || TransientCategories()[0] != "red" {
		t.Error("a caller changed the categories of everybody")
	}
}

func TestKnownCategoriesAreThoseOfTheContract(t *testing.T) {
	t.Parallel()
	for category, want := range map[string]bool{Network: true, Window: true, "": false, "inventada": false} {
		if got := Known(category); got != want {
			t.Errorf("%q: got %v, want %v", category, got, want)
		}
	}
}
