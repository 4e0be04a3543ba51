<?php
// The client of the media service for your site. It needs the extension curl of PHP.
declare(strict_types=1);

final class MediaClient
{
    /** The token is kept in a file, which must not be where the web server serves it. */
    public function __construct(
        private string $server,
        private string $apiKey,
        private string $password,
        private string $tokenFile,
    ) {
    }

    /** MEDIA_SERVER (https://media.example.com), MEDIA_API_KEY and MEDIA_PASSWORD are in the environment. */
    public static function fromEnvironment(): self
    {
        $setting = fn (string $name) => getenv($name) ?: throw new RuntimeException("set $name in the environment");
        return new self(
            $setting('MEDIA_SERVER'),
            $setting('MEDIA_API_KEY'),
            $setting('MEDIA_PASSWORD'),
            $setting('HOME') . '/.media-token.json',
        );
    }

    /**
     * Uploads images: all of them are stored, or none.
     *
     * @param string[] $paths
     * @param array{alias?: string, sub_folder?: string, url?: string} $fields url is the address of one more image
     * @return array<array{full_path: string, filename: string, webp?: string}> in the same order
     */
    public function uploadImages(array $paths, array $fields = []): array
    {
        foreach (array_values($paths) as $i => $path) {
            if (!is_readable($path)) {
                throw new RuntimeException("$path: it is missing, or may not be read");
            }
            $fields["files[$i]"] = new CURLFile($path, null, basename($path));
        }
        return $this->call('POST', '/api/upload/image', $fields)['result'];
    }

    /** Returns the images of a folder, page by page. */
    public function images(string $alias, string $folder = ''): Generator
    {
        $cursor = '';
        do {
            $query = http_build_query(['folder' => $folder, 'cursor' => $cursor]);
            $answer = $this->call('GET', "/api/items/image/$alias?$query");
            foreach ($answer['result'] as $image) {
                yield $image;
            }
            $cursor = $answer['next'] ?? '';
        } while ($cursor !== '');
    }

    /** Deletes one image. */
    public function deleteImage(string $alias, string $filename): void
    {
        $this->call('DELETE', $this->path($alias, $filename));
    }

    /**
     * Deletes images, 1,000 with each request.
     *
     * @param string[] $filenames
     * @return array<string, string> why an image is not deleted, by its filename
     */
    public function deleteImages(string $alias, array $filenames): array
    {
        $kept = [];
        foreach (array_chunk($filenames, 1000) as $set) {
            $fields = array_map(fn ($filename) => '&filename=' . rawurlencode($filename), $set);
            $answer = $this->call('POST', "/api/items/image/$alias", 'action=delete' . implode('', $fields));
            $kept += array_column(array_filter($answer['result'], fn ($r) => !$r['deleted']), 'message', 'filename');
        }
        return $kept;
    }

    /** Moves an image, or copies it with copy_to in place of to. Returns the new image. */
    public function moveImage(string $alias, string $filename, string $to, string $field = 'to'): array
    {
        return $this->call('POST', $this->path($alias, $filename), [$field => $to])['result'][0];
    }

    /** Replaces an image, if nobody else has replaced it. The alias must overwrite. */
    public function replaceImage(string $alias, string $filename, string $path): array
    {
        $content = file_get_contents($path) ?: throw new RuntimeException("$path: it cannot be read");
        $image = $this->call('GET', $this->path($alias, $filename))['result'][0];
        $headers = ["If-Match: $image[etag]"];
        return $this->call('PUT', $this->path($alias, $filename), $content, $headers)['result'][0];
    }

    private function path(string $alias, string $filename): string
    {
        return "/api/items/image/$alias/" . implode('/', array_map(rawurlencode(...), explode('/', $filename)));
    }

    /** Sends a request with a token. Returns the answer to its success. */
    private function call(string $method, string $path, array|string $body = '', array $headers = []): array
    {
        if ($method !== 'GET') {
            $headers[] = 'Idempotency-Key: ' . bin2hex(random_bytes(16));
        }
        $send = fn (string $token) => $this->sendSafely($method, $path, $body, [
            "HTTP_SERVICE_API_KEY: $this->apiKey",
            "HTTP_SERVICE_ACCESS_TOKEN: $token",
            ...$headers,
        ]);
        [$status, $answer] = $send($this->keptToken() ?? $this->newToken());
        if ($status === 401) { // the token has ended before its time
            [, $answer] = $send($this->newToken());
        }
        if (!$answer['success']) {
            $lines = array_map(fn ($e) => trim("$e[filename]: $e[message]", ': '), $answer['errors']);
            throw new RuntimeException(implode("\n", $lines));
        }
        return $answer;
    }

    /** Sends a request again until it is answered. With its key, a change is made once. */
    private function sendSafely(string $method, string $path, array|string $body, array $headers): array
    {
        for ($attempt = 1; ; $attempt++) {
            try {
                return $this->send($method, $path, $body, $headers);
            } catch (RuntimeException $e) {
                if ($attempt === 4) {
                    throw $e;
                }
                sleep($attempt);
            }
        }
    }

    private function keptToken(): ?string
    {
        $kept = is_file($this->tokenFile) ? json_decode((string) file_get_contents($this->tokenFile), true) : null;
        return ($kept['expires_at'] ?? 0) > time() + 60 ? $kept['token'] : null;
    }

    private function newToken(): string
    {
        $login = ['api_key' => $this->apiKey, 'password' => $this->password];
        [, $answer] = $this->send('POST', '/api/auth/generateToken', $login);
        if (!$answer['success']) {
            throw new RuntimeException("no token: $answer[message]");
        }
        $file = tempnam(dirname($this->tokenFile), 'token'); // which only this user can read
        file_put_contents($file, json_encode($answer));
        rename($file, $this->tokenFile);
        return $answer['token'];
    }

    /** @return array{int, array} the status and the answer */
    private function send(string $method, string $path, array|string $body, array $headers = []): array
    {
        $curl = curl_init($this->server . $path);
        curl_setopt_array($curl, [
            CURLOPT_CUSTOMREQUEST => $method,
            CURLOPT_HTTPHEADER => $headers,
            CURLOPT_RETURNTRANSFER => true,
            CURLOPT_CONNECTTIMEOUT => 10,
        ]);
        if ($body !== '') {
            curl_setopt($curl, CURLOPT_POSTFIELDS, $body); // an array is sent as multipart/form-data
        }
        $content = curl_exec($curl);
        if ($content === false) {
            throw new RuntimeException(curl_error($curl));
        }
        $status = curl_getinfo($curl, CURLINFO_RESPONSE_CODE);
        $answer = json_decode($content, true);
        if (!isset($answer['success'])) {
            throw new RuntimeException("the server answered $status, and not as the media service does");
        }
        return [$status, $answer];
    }
}
