/** The reason why the embedded PostgreSQL cannot be used, as one sentence for the operator. */
export class EmbeddedError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'EmbeddedError'
  }
}

const fullDisk = /No space left on device|ENOSPC|Disk quota exceeded|EDQUOT/

/** Replaces the message of a full disk by a uniform one, because PostgreSQL words it differently for each file. */
export function explainFullDisk(problem: string, path: string): string {
  if (!fullDisk.test(problem)) return problem
  return `The disk that holds ${path} is full, so the embedded PostgreSQL cannot write. Free space on it, or set KITH_DATA_DIR to a folder on another disk.`
}
