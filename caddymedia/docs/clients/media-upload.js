// Uploads files from a page of your site. Your server answers /media-ticket as ticket.php and ticket.mjs do.
const service = ''; // https://media.example.com, if the page is on another site

/**
 * Returns the header Authorization for the next upload of a kind, image or file. It waits until your
 * server keeps it, as save.php and save.mjs do. That of an editor is stored at once.
 */
export async function authorization(kind = 'image', use = {}) {
	const response = await fetch('/media-ticket', { method: 'POST', body: new URLSearchParams({ kind, max_files: 1, ...use }) });
	if (!response.ok) throw new Error('You may not upload.');
	return `Bearer ${(await response.json()).ticket}`;
}

/**
 * Uploads a File or Blob of an editor. Returns its {full_path, filename}, webp if it has a variant,
 * and renditions if the alias has some. The message of an error is for the user. progress is called with the bytes sent and their total; signal is
 * that of an AbortController.
 */
export async function upload(file, { name = file.name, kind = 'image', progress = () => {}, signal } = {}) {
	const form = new FormData();
	form.append('files[]', file, name);
	const request = new XMLHttpRequest(); // because fetch reports no progress
	request.open('POST', `${service}/api/upload/${kind}`);
	request.setRequestHeader('Authorization', await authorization(kind, { editor: 1 }));
	request.responseType = 'json';
	request.upload.addEventListener('progress', (event) => progress(event.loaded, event.total));
	signal?.addEventListener('abort', () => request.abort());
	return new Promise((resolve, reject) => {
		request.addEventListener('loadend', () => {
			if (request.response?.success) return resolve(request.response.result[0]);
			reject(new Error(request.response?.errors?.[0].message ?? 'The upload has failed. Try it again.'));
		});
		request.send(form);
	});
}
