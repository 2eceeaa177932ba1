import { ledgerFollower } from '../../src/ledger/seal.ts'
import { follow } from './followers.ts'
import type { Service } from './service.ts'

/** Seals all answers of all organizations, without the pause between two runs. */
export async function sealLedgers({ db, config }: Pick<Service, 'db' | 'config'>): Promise<void> {
  const nowMs = () => Date.now() + 3_600_000
  await follow(db, [ledgerFollower({ originName: config.ledgerOrigin })], { nowMs })
}
