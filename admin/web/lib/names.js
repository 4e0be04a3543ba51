// @ts-check
// Rules of names. They are the rules of the service.

/** Valid names of storages and aliases. */
export const validName = /^[a-z0-9_-]{1,64}$/;
export const nameWords = 'A name is 1 to 64 of the characters a-z, 0-9, _ and -.';

/** Valid API keys of accounts. */
export const validKey = /^(?!\.{1,2}$)[A-Za-z0-9._~-]{1,128}$/;
export const keyWords = 'An API key is 1 to 128 of the characters A-Z, a-z, 0-9, ., _, ~ and -.';
