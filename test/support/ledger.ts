import { ledgerFollower } from '../../src/ledger/seal.ts'
import { follow, startFollowing } from './followers.ts'
import type { Service } from './service.ts'

type Sealed = Pick<Service, 'db' | 'config'>

/** Seals all answers of all organizations, without the pause between two runs. */
export async function sealLedgers({ db, config }: Sealed): Promise<void> {
  const nowMs = () => Date.now() + 3_600_000
  await follow(db, [ledgerFollower({ originName: config.ledgerOrigin })], { nowMs })
}

/** Seals answers as they arrive, as the program does, until the returned function is called. */
export function startSealing({ db, config }: Sealed): () => Promise<void> {
  return startFollowing(db, [ledgerFollower({ originName: config.ledgerOrigin })])
}
