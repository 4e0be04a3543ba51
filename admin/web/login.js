// @ts-check
// The login page works without this script. With it, the requested page is shown after the login.
const form = /** @type {HTMLFormElement} */ (document.getElementById('login'));

form.action += location.hash;

// A link from another site comes without the cookie of a running session.
if (!form.user.value) {
	const session = await fetch('api/session', {
		method: 'HEAD',
		credentials: 'same-origin',
		cache: 'no-store',
	}).catch(() => null);
	if (session?.ok) location.replace('./' + location.hash);
}

export {};
