// Uploads images:  node upload.mjs photo.jpg ...
import { getToken, uploadImages } from './media.mjs';

try {
	for (const item of await uploadImages(await getToken(), process.argv.slice(2), { alias: 'content' })) {
		console.log(item.full_path, item.filename);
	}
} catch (error) {
	// fetch says why a server cannot be reached in the cause.
	console.error([error.message, error.cause?.message].filter(Boolean).join(': '));
	process.exitCode = 1;
}
