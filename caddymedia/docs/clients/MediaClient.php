<?php
// The client of the media service for your site. It needs the extension curl of PHP.
declare(strict_types=1);

/** The service, or PHP itself, refuses files of a user. The message is for that user. */
final class MediaRefusal extends RuntimeException
{
}

final class MediaClient
{
    private string $tokenFile;

    /** The token is kept in a folder that only this user of the system can read, in a file for this server and account. */
    public function __construct(
        private string $server,
        private string $apiKey,
        private string $password,
        ?string $tokenFolder = null,
    ) {
        $user = fstat(tmpfile())['uid']; // of this process, also without the extension posix
        $folder = $tokenFolder ?? sys_get_temp_dir() . "/media-tokens-$user";
        if (!is_dir($folder) && !@mkdir($folder, 0700) && !is_dir($folder)) {
            throw new RuntimeException("$folder: the folder for tokens cannot be made");
        }
        // In a temporary folder another user may have made it.
        if (is_link($folder) || fileowner($folder) !== $user || (PHP_OS_FAMILY !== 'Windows' && fileperms($folder) & 0077)) {
            throw new RuntimeException("$folder: the folder for tokens is not one that only this user can read");
        }
        $this->tokenFile = "$folder/" . hash('sha256', "$server\n$apiKey") . '.json';
    }

    /** MEDIA_SERVER (https://media.example.com), MEDIA_API_KEY and MEDIA_PASSWORD are in the environment. */
    public static function fromEnvironment(): self
    {
        $setting = fn (string $name) => getenv($name) ?: throw new RuntimeException("set $name in the environment");
        return new self($setting('MEDIA_SERVER'), $setting('MEDIA_API_KEY'), $setting('MEDIA_PASSWORD'));
    }

    /**
     * Uploads images: all of them are stored, or none.
     *
     * @param array $files a field of a form such as $_FILES['photos'], or paths; a key that is a text is the name
     *     under which the path is sent: ['photo.jpg' => '/tmp/a8f3']
     * @param array{alias?: string, sub_folder?: string, url?: string, hold?: int} $fields url is the
     *     address of one more image; hold, in seconds, lets uploads wait for keep, and returns what held does
     * @return array<array{full_path: string, filename: string, webp?: string, renditions?: array,
     *     width?: int, height?: int, srcset?: string}> in the same order
     */
    public function uploadImages(array $files, array $fields = []): array
    {
        return $this->upload('image', $files, $fields);
    }

    /** Uploads files of any kind that the alias accepts, as uploadImages does. */
    public function uploadFiles(array $files, array $fields = []): array
    {
        return $this->upload('file', $files, $fields);
    }

    /** Returns the items of a folder, page by page. $kind is image or file; $list has more parameters of a list. */
    public function items(string $kind, string $alias, string $folder = '', array $list = []): Generator
    {
        $cursor = '';
        do {
            $query = http_build_query(['folder' => $folder, 'cursor' => $cursor] + $list, '', '&');
            $answer = $this->call('GET', self::path($kind, $alias) . "?$query");
            foreach ($answer['result'] as $item) {
                yield $item;
            }
            $cursor = $answer['next'] ?? '';
        } while ($cursor !== '');
    }

    /**
     * Deletes items, 1,000 with each request.
     *
     * @param string[] $filenames
     * @return array<string, string> why an item is not deleted, by its filename
     */
    public function delete(string $kind, string $alias, array $filenames): array
    {
        $kept = [];
        foreach (array_chunk($filenames, 1000) as $set) {
            $answer = $this->call('POST', self::path($kind, $alias), 'action=delete' . self::fields('filename', $set));
            $kept += array_column(array_filter($answer['result'], fn ($r) => !$r['deleted']), 'message', 'filename');
        }
        return $kept;
    }

    /** Moves an item, or copies it with copy_to in place of to. Returns the new item. */
    public function move(string $kind, string $alias, string $filename, string $to, string $field = 'to'): array
    {
        return $this->call('POST', self::path($kind, $alias, ...explode('/', $filename)), [$field => $to])['result'][0];
    }

    /** Replaces an item, if nobody else has replaced it. The alias must overwrite. */
    public function replace(string $kind, string $alias, string $filename, string $path): array
    {
        $content = file_get_contents($path) ?: throw new RuntimeException("$path: it cannot be read");
        $address = self::path($kind, $alias, ...explode('/', $filename));
        $item = $this->call('GET', $address)['result'][0];
        return $this->call('PUT', $address, $content, ["If-Match: $item[etag]"])['result'][0];
    }

    /**
     * Signs the addresses of items of a private alias, 1,000 with each request.
     *
     * @param string[] $filenames
     * @param array{rendition?: string, download?: string} $fields
     * @return array<string, string> the addresses, by filename
     */
    public function sign(string $kind, string $alias, array $filenames, int $seconds = 3600, array $fields = []): array
    {
        $addresses = [];
        $form = http_build_query(['kind' => $kind, 'alias' => $alias, 'expires_in' => $seconds] + $fields, '', '&');
        foreach (array_chunk($filenames, 1000) as $set) {
            $answer = $this->call('POST', '/api/sign', $form . self::fields('filename', $set));
            $addresses += array_column($answer['result'], 'url', 'filename');
        }
        return $addresses;
    }

    /**
     * Requests a ticket for the browser of a user.
     *
     * @param array{kind: string, alias?: string, sub_folder?: string, filename?: string, max_files?: int,
     *     max_size?: int, expires_in?: int, hold?: int} $fields with hold, uploads vanish after so many
     *     seconds unless they are kept
     * @return array{ticket: string, expires_at: int} expires_at is in Unix seconds
     */
    public function ticket(array $fields): array
    {
        $answer = $this->call('POST', '/api/auth/ticket', $fields);
        return ['ticket' => $answer['ticket'], 'expires_at' => $answer['expires_at']];
    }

    /**
     * Stores held uploads as items: all of them, or none. Repeating it returns the same items.
     *
     * @param array $ids up to 200 of a form; what is empty, as of a refused file, is left out
     * @return array<array{full_path: string, filename: string, webp?: string, renditions?: array,
     *     width?: int, height?: int, srcset?: string}> in the same order
     */
    public function keep(string $kind, string $alias, array $ids, string $subFolder = '', string $filename = ''): array
    {
        $ids = array_filter($ids, fn ($id) => is_string($id) && $id !== '');
        if (!$ids) {
            return [];
        }
        $fields = array_filter(['action' => 'keep', 'sub_folder' => $subFolder, 'filename' => $filename], strlen(...));
        $form = http_build_query($fields, '', '&') . self::fields('held', $ids);
        return $this->call('POST', self::path($kind, $alias), $form, key: false)['result']; // the ids are its key
    }

    /**
     * Describes a held upload.
     *
     * @return array{held: string, name: string, size: int, content_type: string, expires_at: int,
     *     width?: int, height?: int} expires_at is in Unix seconds
     */
    public function held(string $kind, string $id): array
    {
        return $this->call('GET', self::heldPath($kind, $id))['result'][0];
    }

    /** Ends a held upload. */
    public function release(string $kind, string $id): void
    {
        $this->call('DELETE', self::heldPath($kind, $id));
    }

    private function upload(string $kind, array $files, array $fields): array
    {
        $isForm = array_key_exists('tmp_name', $files);
        $n = 0;
        foreach ($isForm ? self::formFiles($files) : $files as $name => $path) {
            [$name, $path] = is_array($path) ? $path : [is_int($name) ? basename($path) : $name, $path];
            if (!is_readable($path)) {
                throw new RuntimeException("$path: it is missing, or may not be read");
            }
            $fields['files[' . $n++ . ']'] = new CURLFile($path, null, $name);
        }
        if ($isForm && $n === 0) {
            throw new MediaRefusal('choose a file');
        }
        return $this->call('POST', "/api/upload/$kind", $fields)['result'];
    }

    /** Returns name and path of each file in a field of a form, which may be [] or nested. An empty input is none. */
    private static function formFiles(array $field): array
    {
        $values = fn (mixed $value) => iterator_to_array(
            new RecursiveIteratorIterator(new RecursiveArrayIterator((array) $value)),
            false,
        );
        $files = [];
        foreach (array_map(null, ...array_map($values, [$field['name'], $field['tmp_name'], $field['error']])) as [$name, $path, $error]) {
            match ($error) {
                UPLOAD_ERR_OK => $files[] = [$name, $path],
                UPLOAD_ERR_NO_FILE => null,
                UPLOAD_ERR_INI_SIZE => throw new MediaRefusal("$name: it is larger than " . ini_get('upload_max_filesize')),
                UPLOAD_ERR_FORM_SIZE => throw new MediaRefusal("$name: it is larger than the form allows"),
                UPLOAD_ERR_PARTIAL => throw new MediaRefusal("$name: it has not arrived completely"),
                UPLOAD_ERR_NO_TMP_DIR => throw new RuntimeException('PHP has no upload_tmp_dir'),
                UPLOAD_ERR_CANT_WRITE => throw new RuntimeException('PHP cannot write into its upload_tmp_dir'),
                default => throw new RuntimeException("PHP has not received $name: its error $error"),
            };
        }
        return $files;
    }

    /** @param string[] $values */
    private static function fields(string $name, array $values): string
    {
        return implode('', array_map(fn ($value) => "&$name=" . rawurlencode($value), $values));
    }

    /** Returns the path of an alias or an item. */
    private static function path(string ...$segments): string
    {
        return '/api/items/' . self::encoded(...$segments);
    }

    private static function heldPath(string $kind, string $id): string
    {
        return '/api/upload/' . self::encoded($kind, 'held', $id);
    }

    /** Returns the segments of a path. curl removes dot segments, which would lead to another one. */
    private static function encoded(string ...$segments): string
    {
        $name = implode('/', $segments);
        if (array_intersect(explode('/', $name), ['', '.', '..'])) {
            throw new MediaRefusal("the name \"$name\" has a part that is empty, . or ..");
        }
        return implode('/', array_map(rawurlencode(...), $segments));
    }

    /** Sends a request with a token. Returns the answer to its success. */
    private function call(string $method, string $path, array|string $body = '', array $headers = [], bool $key = true): array
    {
        if ($key && $method !== 'GET') {
            $headers[] = 'Idempotency-Key: ' . bin2hex(random_bytes(16));
        }
        $send = fn (string $token) => $this->sendSafely($method, $path, $body, [
            "Authorization: Bearer $token",
            ...$headers,
        ]);
        [$status, $answer] = $send($this->keptToken() ?? $this->newToken());
        if ($status === 401) { // the token has ended before its time
            [$status, $answer] = $send($this->newToken());
        }
        if (!$answer['success']) {
            if (!isset($answer['errors'])) { // of a ticket or a signature, which no file of a user is to blame for
                throw new RuntimeException($answer['message']);
            }
            $message = implode("\n", array_map(fn ($e) => trim("$e[filename]: $e[message]", ': '), $answer['errors']));
            throw in_array($status, [400, 404, 409, 413, 415], true) ? new MediaRefusal($message) : new RuntimeException($message);
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
        // A file of this process, which takes the name at once: another process reads the old token or the new one.
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
            CURLOPT_LOW_SPEED_LIMIT => 1, // an upload may take long, but a server that is silent for 300 s is gone
            CURLOPT_LOW_SPEED_TIME => 300,
            CURLOPT_TIMEOUT => str_starts_with($path, '/api/auth/') ? 30 : 0, // a visitor waits for a ticket
            CURLOPT_PATH_AS_IS => true,
        ]);
        if ($body !== '') {
            curl_setopt($curl, CURLOPT_POSTFIELDS, $body); // an array is sent as multipart/form-data
        }
        $content = curl_exec($curl);
        if ($content === false) {
            throw new RuntimeException(curl_error($curl));
        }
        $status = curl_getinfo($curl, CURLINFO_RESPONSE_CODE);
        $answer = $status === 204 ? ['success' => true] : json_decode($content, true);
        if (!isset($answer['success'])) {
            throw new RuntimeException("the server answered $status, and not as the media service does");
        }
        return [$status, $answer];
    }
}
