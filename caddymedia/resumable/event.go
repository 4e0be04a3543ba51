package resumable

// Event is the creation or an end of an upload.
type Event string

// The events of an upload. One that is a part of others ends with these, without an event.
const (
	Created    Event = "created"
	Finished   Event = "finished"   // its item is stored
	Refused    Event = "refused"    // its item is refused
	Terminated Event = "terminated" // on request
	Expired    Event = "expired"    // without its last byte
)

// Events returns all events of an upload.
func Events() []Event { return []Event{Created, Finished, Refused, Terminated, Expired} }

func (s *Store) observe(kind string, event Event) {
	if s.Observe != nil && kind != "" {
		s.Observe(kind, event)
	}
}
