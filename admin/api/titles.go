package api

import (
	"github.com/caddymedia/media/storagedrivers"
)

type guaranteeAnswer struct {
	Name  string `json:"name"`
	Holds bool   `json:"holds"`
	Text  string `json:"text"`
}

// guarantees describes what a storage guarantees.
func guarantees(f storagedrivers.Features) []guaranteeAnswer {
	g := func(name string, holds bool, yes, no string) guaranteeAnswer {
		if holds {
			return guaranteeAnswer{name, true, yes}
		}
		return guaranteeAnswer{name, false, no}
	}
	return []guaranteeAnswer{
		g("create", f.Create == storagedrivers.Atomic,
			"Two uploads of one name never overwrite each other, also if others write to the storage.",
			"Two uploads of one name are kept apart as long as only this service writes to the storage; "+
				"uploads by others at the same moment could overwrite each other."),
		g("replace", f.Replace == storagedrivers.Atomic,
			"While an item is replaced everybody gets the old one or the new one.",
			"While an item is replaced it may be missing for a moment."),
		g("restore", f.Together == storagedrivers.Atomic,
			"When an upload of several items fails, items that it has replaced are put back.",
			"When an upload of several items fails, items that it has replaced stay replaced; the answer names them."),
	}
}
