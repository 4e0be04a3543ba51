// Manages images of the alias content:
//   node items.mjs list [folder]
//   node items.mjs delete filename ...
//   node items.mjs move|copy filename new-filename
//   node items.mjs replace filename photo.jpg
//   node items.mjs import address ...
import { deleteImage, deleteImages, getToken, listImages, replaceImage, transferImage, uploadImages } from './media.mjs';

const alias = 'content';

const commands = {
	list: (token, folder) => listImages(token, alias, folder),
	delete: async (token, ...filenames) => {
		if (filenames.length === 1) return (await deleteImage(token, alias, filenames[0])) ?? [];
		const kept = await deleteImages(token, alias, filenames);
		if (kept.length > 0) throw new Error(kept.map((one) => `${one.filename}: ${one.message}`).join('\n'));
		return [];
	},
	move: async (token, filename, to) => [await transferImage(token, alias, filename, { to })],
	copy: async (token, filename, to) => [await transferImage(token, alias, filename, { copy_to: to })],
	replace: async (token, filename, path) => [await replaceImage(token, alias, filename, path)],
	import: (token, ...addresses) => uploadImages(token, [], { alias }, addresses),
};

try {
	const [command, ...args] = process.argv.slice(2);
	for await (const item of await commands[command](await getToken(), ...args)) {
		console.log(item.full_path, item.filename);
	}
} catch (error) {
	// fetch says why a server cannot be reached in the cause.
	console.error([error.message, error.cause?.message].filter(Boolean).join(': '));
	process.exitCode = 1;
}
