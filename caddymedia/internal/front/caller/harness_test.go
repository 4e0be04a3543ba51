package caller_test

import "github.com/caddymedia/media/caddymedia/internal/test/testservice"

// The names of package testservice that the tests use most.
const (
	someKey       = testservice.SomeKey
	otherKey      = testservice.OtherKey
	password      = testservice.Password
	noonSecond    = testservice.NoonSecond
	origin        = testservice.Origin
	tokenPath     = testservice.TokenPath
	imagePath     = testservice.ImagePath
	filePath      = testservice.FilePath
	putPath       = testservice.PutPath
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
	tusBody       = testservice.TusBody
	asAlice       = testservice.AsAlice
	asBob         = testservice.AsBob
)

type (
	site       = testservice.Site
	httpCase   = testservice.Case
	uploadCase = testservice.Upload
	reply      = testservice.Reply
	part       = testservice.Part
)

var (
	noon         = testservice.Noon
	newSiteWith  = testservice.NewWith
	aSite        = testservice.Default
	account      = testservice.Account
	on           = testservice.On
	withItems    = testservice.WithItems
	withItemsOn  = testservice.WithItemsOn
	withUsers    = testservice.WithUsers
	withUsersAnd = testservice.WithUsersAnd
	run          = testservice.Run
	file         = testservice.File
	field        = testservice.Field
	form         = testservice.Form
	meanwhile    = testservice.Meanwhile
	metadata     = testservice.Metadata
	gifPicture   = testservice.GIF
	samples      = testservice.Samples
)
