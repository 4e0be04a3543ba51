// @ts-check
// Files that a user drops, chooses or pastes: their folders and names, and what the server would refuse.
import { exactSize } from './format.js';
import { folderOf } from './links.js';

const maxLevels = 16;
const maxFolder = 512; // bytes
const maxListed = 60; // extensions in a message
const jpegNames = ['jfif', 'jpe', 'pjp', 'pjpeg']; // which the server stores as jpg
const optionalFormats = ['webp', 'avif', 'heic']; // of images, by an option of the alias
const systemFiles = new Set(['thumbs.db', 'ehthumbs.db', 'desktop.ini', '__macosx']);

/**
 * The part of a path that ends with its first hidden name; '' if none is hidden.
 * @param {string} path
 */
export function hiddenPart(path) {
	const names = path.split('/');
	const at = names.findIndex((name) => name.startsWith('.') || systemFiles.has(name.toLowerCase()));
	return names.slice(0, at + 1).join('/');
}

/**
 * The files of a chosen folder. The hidden ones are added to hidden.
 * @param {Iterable<File>} files
 * @param {Set<string>} hidden
 * @returns {Upload[]}
 */
export function chosen(files, hidden) {
	return [...files].filter(({ webkitRelativePath: path }) => !hides(path, hidden)).map((file) => ({
		file,
		name: file.name,
		folder: folderOf(file.webkitRelativePath),
	}));
}

/**
 * Whether a path is hidden; then its hidden part is added to hidden.
 * @param {string} path
 * @param {Set<string>} hidden
 */
function hides(path, hidden) {
	const part = hiddenPart(path);
	if (part) hidden.add(part);
	return part !== '';
}

/**
 * The files and folders of a drop or of the clipboard. It must be called during their event.
 * @param {DataTransfer} data
 * @returns {(FileSystemEntry | File)[]}
 */
export const entriesOf = (data) =>
	[...data.items].filter(({ kind }) => kind === 'file').map((item) =>
		item.webkitGetAsEntry?.() ?? item.getAsFile()
	).filter((entry) => entry !== null);

/**
 * The files of entries and of all folders in them, some at a time. The hidden ones in folders are
 * added to hidden.
 * @param {(FileSystemEntry | File)[]} entries
 * @param {Set<string>} hidden
 * @returns {AsyncGenerator<Upload[]>}
 */
export async function* walk(entries, hidden) {
	/** @type {any[]} */
	const folders = [];
	/** @param {any[]} found */
	const filesOf = (found) => {
		folders.push(...found.filter(({ isDirectory }) => isDirectory));
		return Promise.all(found.filter(({ isDirectory }) => !isDirectory).map(fileOf));
	};
	yield filesOf(entries);
	while (folders.length > 0) {
		const folder = folders.shift();
		const reader = folder.createReader();
		/** @type {any[]} */
		let found;
		do {
			try {
				found = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
			} catch { // an entry without its file is an error
				yield [{ name: folder.name, folder: folderOf(folder.fullPath.slice(1)) }];
				break;
			}
			yield filesOf(found.filter(({ fullPath }) => !hides(fullPath.slice(1), hidden)));
		} while (found.length > 0);
	}
}

/**
 * @param {any} entry
 * @returns {Promise<Upload>}
 */
async function fileOf(entry) {
	if (entry instanceof File) return { file: entry, name: entry.name, folder: '' };
	const file = await new Promise((resolve) => entry.file(resolve, () => resolve(undefined)));
	return { file, name: entry.name, folder: folderOf(entry.fullPath.slice(1)) };
}

/**
 * The sub folder of a file below the target of an upload. Without a target a tree begins at the root
 * of the alias, and the storage chooses the folder of single files.
 * @param {string} target
 * @param {string} folder of the file in its tree, '' for a single file
 */
export const below = (target, folder) =>
	folder === '' ? target : [target.replace(/\/+$/, ''), folder].filter(Boolean).join('/');

/**
 * The extensions of files that the server may accept; none for any.
 * @param {Pick<Alias, 'extensions'> & Partial<Pick<Alias, 'settings'>>} alias
 */
export function acceptedExtensions({ extensions = [], settings = {} }) {
	return settings.rename_mismatched ? [] : extensions;
}

/**
 * The reason why the server would refuse a file, in its words; '' if it may accept it. In doubt the
 * server decides.
 * @param {Pick<Alias, 'kind' | 'name' | 'extensions' | 'max_size'> & Partial<Pick<Alias, 'settings'>>} alias
 * @param {Upload} upload
 * @param {string} subFolder
 */
export function refusal(alias, { name, file }, subFolder) {
	const { kind, max_size } = alias, extensions = acceptedExtensions(alias);
	if (!file) return 'The browser cannot read it.';
	const extension = /[^.].*\.([a-z0-9]{1,32})$/i.exec(name)?.[1].toLowerCase();
	const hasNone = !extension && !name.normalize('NFKC').includes('.');
	const isJPEG = kind === 'img' && jpegNames.includes(extension ?? '');
	if (extensions.length > 0 && !isJPEG && (hasNone || (extension && !extensions.includes(extension)))) {
		const what = hasNone ? 'the name has no extension' : `.${extension} is not accepted`;
		if (kind !== 'img') return `${what}; files may be ${listed(extensions)}`;
		const way = optionalFormats.includes(extension ?? '')
			? `to accept it, an administrator adds formats ${extension} to the image alias ${alias.name}`
			: 'choose a library for files';
		return `${what}; images may be ${listed(extensions)}; ${way}`;
	}
	if (file.size > max_size) return `larger than ${exactSize(max_size)}`;
	if (subFolder.replace(/\/$/, '').split('/').length > maxLevels)
		return `the sub folder has more than ${maxLevels} levels`;
	if (new TextEncoder().encode(subFolder).length > maxFolder + 1) // a slash at the end
		return `the sub folder is longer than ${maxFolder} bytes`;
	return '';
}

/** @param {string[]} extensions */
function listed(extensions) {
	const more = extensions.length - maxListed;
	const names = more > 0 ? [...extensions.slice(0, maxListed), `${more} others`] : extensions;
	return names.join(', ').replace(/, (?=[^,]*$)/, ' or ');
}

/**
 * A pasted file. A picture that was copied has no name of its own: it gets one from the time, which
 * is not in taken.
 * @param {File} file
 * @param {Date} now
 * @param {Set<string>} taken
 */
export function named(file, now, taken) {
	const [, extension] = /^image\.(\w+)$/.exec(file.name) ?? [];
	if (!extension) return file;
	const two = (/** @type {number} */ n) => String(n).padStart(2, '0');
	const day = `${now.getFullYear()}${two(now.getMonth() + 1)}${two(now.getDate())}`;
	const base = `pasted-${day}-${two(now.getHours())}${two(now.getMinutes())}${two(now.getSeconds())}`;
	let name = `${base}.${extension}`;
	for (let n = 2; taken.has(name); n++) name = `${base}-${n}.${extension}`;
	taken.add(name);
	return new File([file], name, { type: file.type, lastModified: file.lastModified });
}
