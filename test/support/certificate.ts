import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'

// DER encodes a value as tag, length and content (ITU-T X.690).
function der(tag: number, ...content: Uint8Array[]): Buffer {
  const body = Buffer.concat(content)
  const length = body.length < 128 ? [body.length] : [0x82, body.length >> 8, body.length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...length]), body])
}

const sequence = (...content: Uint8Array[]) => der(0x30, ...content)
const oid = (hex: string) => der(0x06, Buffer.from(hex, 'hex'))
const bits = (content: Uint8Array) => der(0x03, Buffer.from([0]), content)
const time = (moment: Date) => der(0x17, Buffer.from(`${moment.toISOString().replace(/\D/g, '').slice(2, 14)}Z`))

/** Creates a self-signed certificate of 127.0.0.1 (RFC 5280) as PEM. It is valid for `hours` from now. */
export function selfSigned(publicKey: KeyObject, privateKey: KeyObject, hours = 1, commonName = 'kith test'): string {
  const ecdsaWithSha256 = sequence(oid('2a8648ce3d040302'))
  const name = sequence(der(0x31, sequence(oid('550403'), der(0x0c, Buffer.from(commonName)))))
  const now = Date.now()
  const validity = sequence(time(new Date(now - 86_400_000)), time(new Date(now + hours * 3_600_000)))
  const alternativeName = sequence(oid('551d11'), der(0x04, sequence(der(0x87, Buffer.from([127, 0, 0, 1])))))
  const content = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.from([1])),
    ecdsaWithSha256,
    name,
    validity,
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(alternativeName)),
  )
  const certificate = sequence(content, ecdsaWithSha256, bits(sign('sha256', content, privateKey)))
  return `-----BEGIN CERTIFICATE-----\n${certificate.toString('base64').replace(/.{64}/g, '$&\n')}\n-----END CERTIFICATE-----\n`
}

/** Writes a self-signed certificate and its key to files in the folder. Returns the settings that name them. */
export async function writePair(folder: string): Promise<{ TLS_CERT_FILE: string; TLS_KEY_FILE: string }> {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const pair = { TLS_CERT_FILE: join(folder, 'certificate.pem'), TLS_KEY_FILE: join(folder, 'key.pem') }
  await writeFile(pair.TLS_CERT_FILE, selfSigned(publicKey, privateKey))
  await writeFile(pair.TLS_KEY_FILE, privateKey.export({ type: 'pkcs8', format: 'pem' }))
  return pair
}
