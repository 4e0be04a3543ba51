// A server for tests of uploads.

/** Answers requests by a function of method, headers and body; null breaks the connection. */
export function serve(answer) {
	const asked = [];
	globalThis.XMLHttpRequest = class extends EventTarget {
		upload = new EventTarget();
		headers = {};
		open(method, address) {
			Object.assign(this, { method, address });
		}
		setRequestHeader(name, value) {
			this.headers[name] = value;
		}
		getResponseHeader(name) {
			return this.answer.headers?.[name] ?? null;
		}
		abort() {
			this.aborted = true;
			this.dispatchEvent(new Event('abort'));
			this.dispatchEvent(new Event('loadend'));
		}
		async send(body) {
			asked.push(`${this.method} ${this.headers['Upload-Offset'] ?? ''}`.trim());
			this.answer = await answer(this.method, this.headers, body);
			if (this.aborted) return;
			this.status = this.answer?.status;
			this.responseText = this.answer?.text ?? '';
			this.dispatchEvent(new Event(this.answer ? 'load' : 'error'));
			this.dispatchEvent(new Event('loadend'));
		}
	};
	return asked;
}
