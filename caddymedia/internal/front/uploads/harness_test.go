package uploads_test

import "github.com/caddymedia/media/caddymedia/internal/test/testservice"

// The names of package testservice that the tests use most.
const (
	someKey       = testservice.SomeKey
	uploadDay     = testservice.UploadDay
	noonSecond    = testservice.NoonSecond
	origin        = testservice.Origin
	tokenPath     = testservice.TokenPath
	imagePath     = testservice.ImagePath
	filePath      = testservice.FilePath
	putPath       = testservice.PutPath
	multipart     = testservice.Multipart
	urlencoded    = testservice.Urlencoded
	bearer        = testservice.Bearer
	ticketBearer  = testservice.TicketBearer
	multipartType = testservice.MultipartType
	svgPicture    = testservice.SVG
	pdfDocument   = testservice.PDF
)

type (
	site       = testservice.Site
	httpCase   = testservice.Case
	uploadCase = testservice.Upload
	reply      = testservice.Reply
	part       = testservice.Part
)

var (
	newSite      = testservice.New
	newSiteWith  = testservice.NewWith
	aSite        = testservice.Default
	withTicket   = testservice.WithTicket
	account      = testservice.Account
	on           = testservice.On
	importing    = testservice.Importing
	withVersions = testservice.WithVersions
	run          = testservice.Run
	runUploads   = testservice.RunUploads
	file         = testservice.File
	field        = testservice.Field
	named        = testservice.Named
	form         = testservice.Form
	meanwhile    = testservice.Meanwhile
	failByName   = testservice.FailByName
	jpegPicture  = testservice.JPEG
	gifPicture   = testservice.GIF
	pngPicture   = testservice.PNG
	pngOf        = testservice.PNGOf
	pngBomb      = testservice.PNGBomb
	gzipFile     = testservice.Gzip
	samples      = testservice.Samples
)
