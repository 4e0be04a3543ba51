package svg

import (
	"bufio"
	"image"
	"strings"
	"testing"
)

// TestSize: an SVG has the size that its root element says, as browsers take it.
func TestSize(t *testing.T) {
	t.Parallel()
	for root, want := range map[string]image.Point{
		`<svg width="300" height="150">`:                          {300, 150},
		`<svg width=" 30.4PX" height="20.5px" viewBox="0 0 1 1">`: {30, 21},
		`<svg width="1in" height="2.54cm">`:                       {96, 96},
		`<svg width="72pt" height="6pc">`:                         {96, 96},
		`<svg width="25.4mm" height="101.6Q">`:                    {96, 96},
		`<svg viewBox="0 0 400 300">`:                             {400, 300},
		`<svg viewBox="-10,-10,24,24">`:                           {24, 24},
		`<svg width="100%" height="100%" viewBox="0 0 40 30">`:    {40, 30},
		`<svg width="80" viewBox="0 0 40 30">`:                    {80, 60},
		`<svg height="60" viewBox="0 0 40 30">`:                   {80, 60},
		`<svg width="0.2" height="0.2">`:                          {1, 1},
		`<svg width="2e3" height="1e3">`:                          {2000, 1000},
		"\xef\xbb\xbf<?xml version='1.0' encoding='latin1'?><!-- <svg width='1' height='1'> --><s:svg width='3' height='4'>": {3, 4},
		`<!DOCTYPE svg [<!ENTITY ns "x">]><svg xmlns:x="&ns;" x:width="9" width="3" height="4">`:                             {3, 4},
		`<svg width="300">`:                  {},
		`<svg>`:                              {},
		`<svg width="3em" height="2em">`:     {},
		`<svg width="-1" height="2">`:        {},
		`<svg width="NaN" height="Inf">`:     {},
		`<svg width="1e300" height="1">`:     {},
		`<svg viewBox="0 0 400">`:            {},
		`<svg viewBox="0 0 0 10">`:           {},
		`<svg width="calc(1px)" height="1">`: {},
		`<svg width="300" height="15`:        {},
		`text`:                               {},
		``:                                   {},
	} {
		w, h := Size(bufio.NewReader(strings.NewReader(root)))
		if got := image.Pt(w, h); got != want {
			t.Errorf("%s: %v, want %v", root, got, want)
		}
	}
}
