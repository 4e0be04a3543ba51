<?php
/**
 * Plugin Name: Media library in the media service
 *
 * New uploads of the media library are stored in the media service too, and pages show them from
 * there. MEDIA_SERVER, MEDIA_API_KEY and MEDIA_PASSWORD are constants in wp-config.php.
 */
declare(strict_types=1);

/** Sends a request, and again with a new token if the kept one has ended. Returns the answer. */
function media_call(string $method, string $kind, string $filename, string $body = ''): array
{
    $base = $method === 'PUT' ? 'upload' : 'items';
    $segments = explode('/', $filename);
    if (array_intersect($segments, ['', '.', '..'])) { // curl would remove them, and send another name
        return ['status' => 0, 'message' => 'the name has a part that is empty, . or ..', 'result' => []];
    }
    $path = "/api/$base/$kind/content/" . implode('/', array_map('rawurlencode', $segments));
    $send = fn (string $token) => media_answer($method, $path, $body, ['Authorization' => "Bearer $token"]);
    $answer = $send(get_transient('media_token') ?: media_token());
    return ($answer['status'] === 401 ? $send(media_token()) : $answer) + ['result' => []];
}

function media_token(): string
{
    $answer = media_answer('POST', '/api/auth/generateToken', ['api_key' => MEDIA_API_KEY, 'password' => MEDIA_PASSWORD]);
    set_transient('media_token', $answer['token'] ?? '', 3600);
    return $answer['token'] ?? '';
}

function media_answer(string $method, string $path, string|array $body, array $headers = []): array
{
    $reply = wp_remote_request(MEDIA_SERVER . $path, compact('method', 'body', 'headers') + ['timeout' => 300]);
    if (is_wp_error($reply)) {
        return ['status' => 0, 'message' => $reply->get_error_message()];
    }
    $status = wp_remote_retrieve_response_code($reply);
    $answer = json_decode(wp_remote_retrieve_body($reply), true) ?: ['message' => "an answer $status of another server"];
    return $answer + ['status' => $status, 'message' => $answer['errors'][0]['message'] ?? ''];
}

/** Returns the item of an attachment with its kind, or an empty array if WordPress alone has it. */
function media_item(int $id): array
{
    return get_post_meta($id, 'media_item', true) ?: [];
}

// WordPress keeps the file that it has received. If the service refuses it, pages show that one.
add_action('add_attachment', function (int $id): void {
    $kind = wp_attachment_is_image($id) ? 'image' : 'file';
    $name = get_post_meta($id, '_wp_attached_file', true); // 2026/11/photo.jpg
    $answer = media_call('PUT', $kind, $name, (string) file_get_contents(get_attached_file($id)));
    if ($answer['result']) {
        update_post_meta($id, 'media_item', ['kind' => $kind] + $answer['result'][0]);
    } else {
        error_log("$name is not in the media service: $answer[message]");
    }
});

add_action('delete_attachment', function (int $id): void {
    $item = media_item($id);
    $answer = $item ? media_call('DELETE', $item['kind'], $item['filename']) : ['success' => true];
    if (!($answer['success'] ?? false)) {
        error_log("$item[filename] stays in the media service: $answer[message]");
    }
});

add_filter('wp_get_attachment_url', fn (string $url, int $id) => media_item($id)['full_path'] ?? $url, 10, 2);

/** Returns the address, width and height of a rendition that is called as a size of WordPress, or null. */
function media_size(int $id, string|array $size): ?array
{
    $address = is_string($size) ? media_item($id)['renditions'][$size] ?? null : null;
    $box = $address ? wp_get_registered_image_subsizes()[$size] ?? null : null;
    $image = wp_get_attachment_metadata($id);
    if (!$box || empty($image['width'])) {
        return null;
    }
    [$width, $height] = $box['crop']
        ? [min($image['width'], $box['width']), min($image['height'], $box['height'])]
        : wp_constrain_dimensions($image['width'], $image['height'], $box['width'], $box['height']);
    return [$address, $width, $height, true];
}

add_filter('image_downsize', fn ($found, int $id, string|array $size) => media_size($id, $size) ?? $found, 10, 3);

/** Returns a srcset of the whole image, or '' if the shown one is cropped. */
function media_srcset(int $id, string $shown): string
{
    $widths = [];
    foreach (wp_get_registered_image_subsizes() as $name => $box) {
        $size = media_size($id, $name);
        if ($size && !$box['crop']) {
            $widths[$size[1]] = "$size[0] $size[1]w";
        } elseif ($size && str_contains($shown, $size[0])) {
            return '';
        }
    }
    return implode(', ', $widths);
}

// Images that a theme shows, and those in the text of a post.
add_filter('wp_get_attachment_image_attributes', function (array $attributes, object $attachment): array {
    $srcset = media_srcset($attachment->ID, $attributes['src']);
    return $srcset ? ['srcset' => $srcset] + $attributes + ['sizes' => '100vw'] : $attributes;
}, 10, 2);
add_filter('wp_content_img_tag', function (string $tag, string $context, int $id): string {
    $srcset = str_contains($tag, ' srcset=') ? '' : media_srcset($id, $tag);
    return $srcset ? str_replace('<img ', "<img srcset=\"$srcset\" sizes=\"100vw\" ", $tag) : $tag;
}, 10, 3);

// The service has the sizes, so WordPress makes none.
add_filter('intermediate_image_sizes_advanced', fn () => []);
add_filter('big_image_size_threshold', fn () => false);
