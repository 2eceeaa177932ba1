import type { Erased } from '@kith/client'

/** What a certificate says of its erasure. The page does not verify the signature: `kith verify` does. */
export function factsOf(certificate: string): Erased['erasure'] {
  const payload = certificate.split('.')[1]!.replaceAll('-', '+').replaceAll('_', '/')
  const bytes = Uint8Array.from(atob(payload), character => character.charCodeAt(0))
  return (JSON.parse(new TextDecoder().decode(bytes)) as { erasure: Erased['erasure'] }).erasure
}
