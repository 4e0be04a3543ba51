package upload

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/caddymedia/media/caddymedia/internal/aliases"
)

// PieceOf returns the failure of a request whose header, or fields, say that it has a piece of a
// file. Clients that send files in pieces take each success for one of theirs. It returns nil for
// other requests.
func PieceOf(kind aliases.Kind, header http.Header, fields url.Values) *aliases.Failure {
	hasPiece := len(header.Values("Content-Range"))+len(header.Values("Upload-Offset")) > 0
	for name, values := range fields {
		for _, value := range values {
			hasPiece = hasPiece || isPiece(name, value)
		}
	}
	if hasPiece {
		return pieceFailure(kind)
	}
	return nil
}

func pieceFailure(kind aliases.Kind) *aliases.Failure {
	return aliases.Failf(aliases.BadRequest, "the request has a piece of a file: send the whole file, without Content-Range or chunks, "+
		"or use /api/upload/%s/resumable", kind.Name())
}

// pieceTotals matches the fields with the number of pieces of a file: those of Plupload, Dropzone,
// Resumable.js, Flow.js, simple-uploader, Syncfusion and FineUploader.
var pieceTotals = regexp.MustCompile(`(?i)^(chunks|(dz|resumable|flow|metadata\.)?total[-_]?chunks?(count)?|qqtotalparts)$`)

// isPiece reports whether a field says that the file is one of several pieces. A single piece is a
// whole file.
func isPiece(name, value string) bool {
	total := value
	switch {
	case name == "metadata", name == "chunkMetadata": // of Kendo, Telerik and DevExtreme
		var metadata struct{ TotalChunks, TotalCount json.Number }
		_ = json.Unmarshal([]byte(value), &metadata) // other clients have other metadata
		total = max(metadata.TotalChunks.String(), metadata.TotalCount.String())
	case !pieceTotals.MatchString(name):
		return false
	}
	n, err := strconv.Atoi(strings.TrimSpace(total))
	return err == nil && n > 1
}
