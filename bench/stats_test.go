package main

import (
	"math"
	"testing"
)

func TestPercentileIsTheNearestRank(t *testing.T) {
	t.Parallel()
	samples := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for p, want := range map[float64]float64{0: 1, 1: 1, 10: 1, 11: 2, 50: 5, 90: 9, 99: 10, 100: 10} {
		if got := percentile(samples, p); got != want {
			t.Errorf("percentile %g: got %g, want %g", p, got, want)
		}
	}
	if got := percentile(nil, 50); !math.IsNaN(got) {
		t.Errorf("percentile of nothing: got %g, want NaN", got)
	}
}

func TestMedianLeavesItsSamplesInOrder(t *testing.T) {
	t.Parallel()
	samples := []float64{9, 1, 5, 3}
	if got := median(samples); got != 4 {
		t.Errorf("median: got %g, want 4", got)
	}
	if samples[0] != 9 || samples[3] != 3 {
		t.Errorf("the samples are now %v", samples)
	}
	if got := median(samples[:3]); got != 5 {
		t.Errorf("median of three: got %g, want 5", got)
	}
}
