<?php
// Exchanges the token of your site for tickets. The address of this script is /media-ticket.
// MEDIA_SERVER (https://media.example.com), MEDIA_API_KEY and MEDIA_PASSWORD are in the environment.
declare(strict_types=1);

/** Sends a form. Returns the answer, which is JSON in success and in failure, and its status. */
function post(string $path, array $fields, array $headers = []): array
{
    $curl = curl_init(getenv('MEDIA_SERVER') . $path);
    curl_setopt_array($curl, [
        CURLOPT_POSTFIELDS => http_build_query($fields),
        CURLOPT_HTTPHEADER => $headers,
        CURLOPT_RETURNTRANSFER => true,
        CURLOPT_TIMEOUT => 10,
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
    return $answer + ['status' => $status];
}

/** Returns a token, which is valid for many tickets. It is kept in a file that no web server may serve. */
function token(bool $new = false): string
{
    $file = getenv('HOME') . '/.media-token.json';
    $kept = is_file($file) && !$new ? json_decode((string) file_get_contents($file), true) : null;
    if (($kept['expires_at'] ?? 0) > time() + 60) {
        return $kept['token'];
    }
    $answer = post('/api/auth/generateToken', [
        'api_key' => getenv('MEDIA_API_KEY'), 'password' => getenv('MEDIA_PASSWORD'),
    ]);
    if (!$answer['success']) {
        throw new RuntimeException("no token: $answer[message]");
    }
    $temporary = tempnam(dirname($file), 'token'); // which only this user can read
    file_put_contents($temporary, json_encode($answer));
    rename($temporary, $file);
    return $answer['token'];
}

function ticket(array $fields): array
{
    $answer = post('/api/auth/ticket', $fields, ['Authorization: Bearer ' . token()]);
    if ($answer['status'] === 401) { // the token has ended before its time
        $answer = post('/api/auth/ticket', $fields, ['Authorization: Bearer ' . token(new: true)]);
    }
    if (!$answer['success']) {
        throw new RuntimeException("no ticket: $answer[message]");
    }
    return ['ticket' => $answer['ticket'], 'expires_at' => $answer['expires_at']];
}

function answer(int $status, array $body): void
{
    http_response_code($status);
    header('Content-Type: application/json');
    header('Cache-Control: no-store');
    echo json_encode($body);
}

session_start(['read_and_close' => true]);
if ($_SERVER['REQUEST_METHOD'] !== 'POST') {
    answer(405, ['message' => 'use POST']);
} elseif (!isset($_SESSION['user'])) { // which your login sets
    answer(403, ['message' => 'log in first']);
} else {
    try {
        answer(200, ticket(['kind' => 'file', 'alias' => 'content', 'max_files' => 10, 'max_size' => 2 * 1024 ** 3]));
    } catch (RuntimeException $e) {
        error_log($e->getMessage());
        answer(502, ['message' => 'uploads are not possible now']);
    }
}
