// Signs each request once more with AWS's own signer and compares. Keeps nothing.
import http from 'node:http';
import { SignatureV4 } from '@smithy/signature-v4';
import { HttpRequest } from '@smithy/protocol-http';
import sha from '@aws-crypto/sha256-js';

const credentials = { accessKeyId: process.env.LIVE_KEY_ID, secretAccessKey: process.env.LIVE_SECRET };

async function verdict(req, body) {
    const given = req.headers.authorization ?? '';
    const [, region, names] = given.match(/Credential=[^/]+\/\d+\/([^/]+)\/s3\/aws4_request,\s*SignedHeaders=([^,]+)/) ?? [];
    if (!names) return 'not signed';
    const url = new URL(req.url, 'http://x');
    const headers = Object.fromEntries(names.split(';').map((name) => [name, req.headers[name]]));
    const stamp = headers['x-amz-date'];
    const date = new Date(stamp.replace(/(....)(..)(..)T(..)(..)(..)Z/, '$1-$2-$3T$4:$5:$6Z'));
    delete headers['x-amz-date'];
    const request = new HttpRequest({
        method: req.method, protocol: 'http:', hostname: req.headers.host, path: decodeURIComponent(url.pathname).split('/').map(
            (s) => encodeURIComponent(s).replace(/[!'()*]/g, (c) => '%' + c.charCodeAt(0).toString(16).toUpperCase())).join('/'),
        query: Object.fromEntries(url.searchParams), headers, body });
    const signer = new SignatureV4({ service: 's3', region, credentials, sha256: sha.Sha256, uriEscapePath: false, applyChecksum: true });
    const signed = await signer.sign(request, { signingDate: date });
    const plain = (text) => text.replace(/,\s*/g, ',');
    return plain(signed.headers.authorization) === plain(given) ? null : signed.headers.authorization;
}

http.createServer((req, res) => {
    const parts = [];
    req.on('data', (part) => parts.push(part));
    req.on('end', async () => {
        const fault = await verdict(req, Buffer.concat(parts)).catch(String);
        res.writeHead(fault ? 403 : 200).end(fault ?? 'good');
    });
}).listen(Number(process.argv[2]), '127.0.0.1');
