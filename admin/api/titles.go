package api

import (
	"github.com/caddymedia/media/storagedrivers"
)

// title describes a step of a probe.
func title(driver storagedrivers.Description, step storagedrivers.ProbeStep) string {
	switch step {
	case storagedrivers.ProbeCheck:
		if driver.Local {
			return "Find the " + driver.Noun
		}
		return "Connect, log in and find the " + driver.Noun
	case storagedrivers.ProbeCreate:
		return "Store a small file"
	case storagedrivers.ProbeCreateAgain:
		return "Refuse a second file of the same name"
	case storagedrivers.ProbeRead:
		return "Read the file"
	case storagedrivers.ProbeRange:
		return "Read a part of the file"
	case storagedrivers.ProbeOverwrite:
		return "Replace the file"
	case storagedrivers.ProbeList:
		return "List the file"
	case storagedrivers.ProbeDelete:
		return "Delete the file"
	case storagedrivers.ProbeGone:
		return "See that the file is gone"
	case storagedrivers.ProbeCleanUp:
		return "Clean up"
	}
	return string(step) // a test finds it
}

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
