package mediahttp_test

import "github.com/caddymedia/media/caddymedia/internal/test/testservice"

// The names of package testservice that the tests use most.
const (
	someKey       = testservice.SomeKey
	otherKey      = testservice.OtherKey
	password      = testservice.Password
	origin        = testservice.Origin
	tokenPath     = testservice.TokenPath
	imagePath     = testservice.ImagePath
	filePath      = testservice.FilePath
	resumablePath = testservice.ResumablePath
	ticketPath    = testservice.TicketPath
	signPath      = testservice.SignPath
	itemsPath     = testservice.ItemsPath
	multipart     = testservice.Multipart
	urlencoded    = testservice.Urlencoded
	bearer        = testservice.Bearer
	ticketBearer  = testservice.TicketBearer
	multipartType = testservice.MultipartType
	ifAny         = testservice.IfAny
	tusHeader     = testservice.TusHeader
	tusBody       = testservice.TusBody
	asAlice       = testservice.AsAlice
)

type (
	site       = testservice.Site
	httpCase   = testservice.Case
	uploadCase = testservice.Upload
	reply      = testservice.Reply
	part       = testservice.Part
)

var (
	noon        = testservice.Noon
	newSite     = testservice.New
	newSiteWith = testservice.NewWith
	aSite       = testservice.Default
	may         = testservice.May
	withTicket  = testservice.WithTicket
	account     = testservice.Account
	on          = testservice.On
	withUsers   = testservice.WithUsers
	importing   = testservice.Importing
	run         = testservice.Run
	file        = testservice.File
	field       = testservice.Field
	named       = testservice.Named
	form        = testservice.Form
	meanwhile   = testservice.Meanwhile
	metadata    = testservice.Metadata
	failByName  = testservice.FailByName
	gifPicture  = testservice.GIF
	pngOf       = testservice.PNGOf
	samples     = testservice.Samples
)
