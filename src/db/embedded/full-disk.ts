const noRoom = /No space left on device|ENOSPC|Disk quota exceeded|EDQUOT/

/** The problem, told as a full disk where it is one: PostgreSQL's own words differ from one file to the next. */
export function explainFullDisk(problem: string, path: string): string {
  if (!noRoom.test(problem)) return problem
  return `The disk is full where ${path} lies: the embedded PostgreSQL cannot write. Make room there, or set KITH_DATA_DIR to a folder on another disk.`
}
