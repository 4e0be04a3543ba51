package webp

var WithProfile = withProfile
