package gcs

import "time"

// google is the address of the service where none is configured.
const google = "https://storage.googleapis.com"

// Config of a [Driver].
type Config struct {
	// Bucket is the name of the bucket.
	Bucket string
	// Key is the JSON key of a service account. Empty: what the environment offers, and
	// nothing for an endpoint that begins with "http://".
	Key string
	// Endpoint is scheme and host of the service. Empty: Google's.
	Endpoint string
	// Prefix is the folder of all keys, without slashes around it. Empty: none.
	Prefix string
	// Timeout is how long the service may keep silent. 0 is 30 s.
	Timeout time.Duration
}
