import { hash } from 'node:crypto'
import { canonicalJson } from '../../client/src/ledger-text.ts'
import type { LedgerEntry } from './schema.ts'

/** The format of receipts. A later format has another number. */
export const receiptFormat = 'kith consent receipt 1'

/** A receipt without its signature. The other members describe the entry in the terms of DPV. */
export type UnsignedReceipt = Record<string, unknown> & {
  entry: LedgerEntry
  /** In base64. */
  salt: string
  tlog_proof: string
  verifier_key: string
}

/** A consent receipt: JSON-LD after ISO/IEC TS 27560, in the terms of DPV 2. docs/receipts.md describes each member. */
export type Receipt = UnsignedReceipt & { jws: string }

/** The hash of a member's value, which the signature covers: SHA-256 of its canonical JSON, in base64url. */
export function memberHash(value: unknown): string {
  return hash('sha256', canonicalJson(value), 'base64url')
}
