package main

import "testing"

func TestMaskHidesMostOfARecipient(t *testing.T) {
	t.Parallel()
	for recipient, want := range map[string]string{
		"+17875550100": "***100", "5550100": "***", "": "***",
		"ana.ruiz@example.com": "a***@example.com", "@example.com": "***@example.com",
	} {
		if got := mask(recipient); got != want {
			t.Errorf("%q: got %q, want %q", recipient, got, want)
		}
	}
}
