//go:build cgo && linux

package webp_test

import (
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/imagingtest"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/webp"
)

func TestOtherVersionIsRefused(t *testing.T) {
	t.Parallel()
	for version, want := range map[int]string{
		0:        "not linked",
		0x010302: "libwebp 1.3.2, but 1.4 or a later",
		0x020400: "libwebp 2.4.0, but 1.4 or a later",
	} {
		imagingtest.Says(t, webp.CheckVersion(version), want, version)
	}
	for _, version := range []int{0x010400, 0x0104FF, 0x010600} {
		imagingtest.Is(t, webp.CheckVersion(version), nil, version)
	}
}

func TestOtherABIIsRefused(t *testing.T) {
	t.Parallel()
	for _, abi := range [][2]int{{0x010f, 0x0109}, {0x030f, 0x0109}, {0x020f, 0x0209}, {0x020f, 0x0009}} {
		imagingtest.Says(t, webp.CheckABI(abi[0], abi[1]), "interfaces", abi)
	}
	imagingtest.Is(t, webp.CheckABI(0x020f, 0x0109), nil)
}

func TestFailureHasAText(t *testing.T) {
	t.Parallel()
	for code := -2; code < 12; code++ {
		if code == 0 {
			continue
		}
		err := webp.Failure(t.Context(), code, "detail")
		known := code <= 10
		if text := err.Error(); strings.Contains(text, "error ") == known || !strings.Contains(text, "(detail)") {
			t.Errorf("%d: %v", code, err)
		}
	}
}

func TestStops(t *testing.T) {
	t.Parallel()
	e := newEncoder(t)
	if !e.Stops() || e.Name() != "libwebp 1.4.0" {
		t.Errorf("%s stops: %v", e.Name(), e.Stops())
	}
}
