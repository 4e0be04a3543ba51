package gcs

import (
	"net/http"

	"github.com/caddymedia/media/storagedrivers/internal/genuine"
)

// cloudStorage recognizes the replies of the service: the kind of a document, the generation of a
// download, the address of an upload, and the statuses of a chunk and of a deletion.
var cloudStorage = genuine.Service{Name: "Google Cloud Storage", Sent: func(response *http.Response) (bool, error) {
	query := response.Request.URL.Query()
	switch request := response.Request; {
	case request.Method == http.MethodDelete:
		return response.StatusCode == http.StatusNoContent, nil
	case request.Method == http.MethodGet && query.Get("alt") != "json": // a download has no such parameter
		return response.Header.Get("X-Goog-Generation") != "", nil
	case query.Get("uploadType") == "resumable" && !query.Has("upload_id"):
		return response.Header.Get("Location") != "", nil
	case query.Has("upload_id") && response.Header.Get("X-Http-Status-Code-Override") != "": // a chunk
		return true, nil
	}
	return genuine.IsJSON(response, "storage#")
}}
