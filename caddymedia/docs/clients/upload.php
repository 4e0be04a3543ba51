<?php
// Uploads images:  php upload.php photo.jpg ...
// MEDIA_SERVER (https://media.example.com), MEDIA_API_KEY and MEDIA_PASSWORD are in the environment.
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

    /**
     * Uploads images: all of them are stored, or none.
     *
     * @param string[] $paths
     * @param array{alias?: string, sub_folder?: string} $fields
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
        [$status, $answer] = $this->upload($fields, $this->keptToken() ?? $this->newToken());
        if ($status === 401) { // the token has ended before its time
            [, $answer] = $this->upload($fields, $this->newToken());
        }
        if (!$answer['success']) {
            $lines = array_map(fn ($e) => trim("$e[filename]: $e[message]", ': '), $answer['errors']);
            throw new RuntimeException(implode("\n", $lines));
        }
        return $answer['result'];
    }

    private function upload(array $fields, string $token): array
    {
        return $this->post('/api/upload/image', $fields, [
            "HTTP_SERVICE_API_KEY: $this->apiKey",
            "HTTP_SERVICE_ACCESS_TOKEN: $token",
        ]);
    }

    private function keptToken(): ?string
    {
        $kept = is_file($this->tokenFile) ? json_decode((string) file_get_contents($this->tokenFile), true) : null;
        return ($kept['expires_at'] ?? 0) > time() + 60 ? $kept['token'] : null;
    }

    private function newToken(): string
    {
        $login = ['api_key' => $this->apiKey, 'password' => $this->password];
        [, $answer] = $this->post('/api/auth/generateToken', $login);
        if (!$answer['success']) {
            throw new RuntimeException("no token: $answer[message]");
        }
        $file = tempnam(dirname($this->tokenFile), 'token'); // which only this user can read
        file_put_contents($file, json_encode($answer));
        rename($file, $this->tokenFile);
        return $answer['token'];
    }

    /** @return array{int, array} the status and the answer */
    private function post(string $path, array $fields, array $headers = []): array
    {
        $curl = curl_init($this->server . $path);
        curl_setopt_array($curl, [
            CURLOPT_POSTFIELDS => $fields, // an array is sent as multipart/form-data
            CURLOPT_HTTPHEADER => $headers,
            CURLOPT_RETURNTRANSFER => true,
            CURLOPT_CONNECTTIMEOUT => 10,
        ]);
        $body = curl_exec($curl);
        if ($body === false) {
            throw new RuntimeException(curl_error($curl));
        }
        $status = curl_getinfo($curl, CURLINFO_RESPONSE_CODE);
        $answer = json_decode($body, true);
        if (!isset($answer['success'])) {
            throw new RuntimeException("the server answered $status, and not as the media service does");
        }
        return [$status, $answer];
    }
}

function setting(string $name): string
{
    return getenv($name) ?: throw new RuntimeException("set $name in the environment");
}

try {
    if (!extension_loaded('curl')) {
        throw new RuntimeException('install the extension curl of PHP');
    }
    $client = new MediaClient(
        setting('MEDIA_SERVER'),
        setting('MEDIA_API_KEY'),
        setting('MEDIA_PASSWORD'),
        setting('HOME') . '/.media-token.json',
    );
    foreach ($client->uploadImages(array_slice($argv, 1), ['alias' => 'content']) as $item) {
        echo "$item[full_path] $item[filename]\n";
    }
} catch (RuntimeException $e) {
    fwrite(STDERR, $e->getMessage() . "\n");
    exit(1);
}
