package items_test

import "github.com/caddymedia/media/caddymedia/internal/test/testservice"

// The names of package testservice that the tests use most.
const (
	someKey      = testservice.SomeKey
	otherKey     = testservice.OtherKey
	noonSecond   = testservice.NoonSecond
	origin       = testservice.Origin
	filePath     = testservice.FilePath
	signPath     = testservice.SignPath
	itemsPath    = testservice.ItemsPath
	multipart    = testservice.Multipart
	urlencoded   = testservice.Urlencoded
	bearer       = testservice.Bearer
	ticketBearer = testservice.TicketBearer
	ifAny        = testservice.IfAny
	asAlice      = testservice.AsAlice
)

type (
	site     = testservice.Site
	httpCase = testservice.Case
	reply    = testservice.Reply
	part     = testservice.Part
)

var (
	newSiteWith  = testservice.NewWith
	hostileNames = testservice.HostileNames
	newSiteOn    = testservice.NewOn
	may          = testservice.May
	account      = testservice.Account
	on           = testservice.On
	withItems    = testservice.WithItems
	withItemsOn  = testservice.WithItemsOn
	withUsers    = testservice.WithUsers
	sizes        = testservice.Sizes
	run          = testservice.Run
	file         = testservice.File
	field        = testservice.Field
	form         = testservice.Form
	meanwhile    = testservice.Meanwhile
	failByName   = testservice.FailByName
	samples      = testservice.Samples
)
