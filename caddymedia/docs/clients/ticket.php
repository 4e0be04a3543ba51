<?php
// Exchanges the token of your site for tickets. The address of this script is /media-ticket.
// MEDIA_SERVER (https://media.example.com), MEDIA_API_KEY and MEDIA_PASSWORD are in the environment.
// A page sends the fields kind, image or file, and max_files, the number of its files.
// Its uploads vanish after two hours, unless save.php keeps them. An editor cannot wait: with the
// field editor they are stored at once.
// All users share the 600 tickets a minute of the account: count the requests of each user if one may want to
// shut out the others.
declare(strict_types=1);
require __DIR__ . '/MediaClient.php';

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
    $kind = ($_POST['kind'] ?? '') === 'file' ? 'file' : 'image';
    $maxFiles = min(max(1, (int) ($_POST['max_files'] ?? 10)), 1000);
    // Remove the choice if you have no editor. The ticket can remove its files while it is valid.
    $waits = isset($_POST['editor']) ? [] : ['hold' => 2 * 3600, 'expires_in' => 2 * 3600];
    try {
        answer(200, MediaClient::fromEnvironment()->ticket([
            'kind' => $kind, 'alias' => 'content', 'max_files' => $maxFiles, 'max_size' => 2 * 1024 ** 3,
        ] + $waits));
    } catch (RuntimeException $e) {
        error_log($e->getMessage());
        answer(502, ['message' => 'uploads are not possible now']);
    }
}
