import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** The folders and files whose tests take seconds each, the longest first. */
const slow = [
  'test/hostile/sequences',
  'test/hostile/fuzz',
  'test/consent-lives',
  'test/process',
  'test/operations',
  'test/tenants',
  'test/hostile',
  'test/explain',
  'cli',
  'console/test/keyboard-choices',
  'console/test/accessibility',
  'console/test/lists',
  'src/db/embedded',
  'src/auth/attacks-over-http',
  'src/filters',
  'test/faults/stop',
  'test/faults/match',
  'test/faults/failover',
]

const rankOf = ({ moduleId }: TestSpecification) => {
  const rank = slow.findIndex(path => moduleId.includes(`/${path}`))
  return rank === -1 ? slow.length : rank
}

/**
 * Runs the slow files first, so that no worker is left with one of them at the end. Vitest itself starts with the largest
 * files, and fuzz.test.ts is a small one. It knows the times of an earlier run, but `npm ci` removes them.
 */
export class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).sort((a, b) => rankOf(a) - rankOf(b))
  }
}
