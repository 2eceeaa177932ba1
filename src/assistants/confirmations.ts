import { createHmac, timingSafeEqual } from 'node:crypto'
import { canonicalJson } from '../../client/src/ledger-text.ts'

/** The time after its dry run for which a change can be confirmed. */
const validMs = 10 * 60_000

export type Confirmations = ReturnType<typeof createConfirmations>

/**
 * Makes and checks the tokens that each allow exactly one change. Nothing is stored, because a token is a signature.
 * The key is a secret of the caller, so a token is valid only for the same caller and organization.
 */
export function createConfirmations(key: string | Buffer) {
  const sign = (change: unknown, version: number, untilMs: number) =>
    createHmac('sha256', key)
      .update(canonicalJson(['kith mcp', change, version, untilMs]))
      .digest()
  return {
    /** Makes the token for a change of an entity at its version. The version of a new entity is 0. */
    issue: (change: unknown, version: number): string => {
      const untilMs = Date.now() + validMs
      return `${untilMs}.${version}.${sign(change, version, untilMs).toString('base64url')}`
    },
    /**
     * Returns the version of the entity in a token, and the Idempotency-Key under which the change is stored once.
     * Undefined if the token is for another change, was made with another key, or has expired.
     */
    check: (change: unknown, token: string): { version: number; key: string } | undefined => {
      const [, until, version, signature] = /^(\d{13})\.(\d{1,10})\.([\w-]{43})$/.exec(token) ?? []
      if (until === undefined) return undefined
      const expected = sign(change, Number(version), Number(until))
      const isSigned = timingSafeEqual(Buffer.from(signature!, 'base64url'), expected)
      if (!isSigned || Date.now() >= Number(until)) return undefined
      return { version: Number(version), key: `mcp-${expected.toString('base64url')}` }
    },
  }
}
