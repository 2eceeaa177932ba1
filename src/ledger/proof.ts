import { firstLineOfProof, type Proof } from '../../client/src/ledger-proof.ts'

/** Formats a proof (https://c2sp.org/tlog-proof). `checkpoint` is a signed note. */
export function formatProof({ index, hashes, checkpoint }: Proof): string {
  const siblings = hashes.map(sibling => Buffer.from(sibling).toString('base64'))
  return `${[firstLineOfProof, `index ${index}`, ...siblings].join('\n')}\n\n${checkpoint}`
}
