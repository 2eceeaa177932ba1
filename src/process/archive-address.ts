import { isAbsolute } from 'node:path'

/** The location of an archive: a folder, or a bucket of an S3-compatible store with its credentials. */
export type ArchiveAddress = Readonly<
  | { folder: string }
  | {
      bucket: string
      /** The beginning of all object names, with a slash at its end, or empty. */
      prefix: string
      endpoint: string
      region: string
      credentials: Readonly<{ accessKeyId: string; secretAccessKey: string; sessionToken?: string }>
    }
>

/** The settings of S3, with the names that other S3 programs use. */
export type S3Settings = {
  KITH_ARCHIVE_ENDPOINT?: string
  AWS_REGION: string
  AWS_ACCESS_KEY_ID?: string
  AWS_SECRET_ACCESS_KEY?: string
  AWS_SESSION_TOKEN?: string
}

const bucketPattern = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/((?:[\w-][\w.-]*\/)*[\w-][\w.-]*)?\/?)?$/

/** Parses the address of an archive. For an invalid one, returns the reason, which continues a sentence. */
export function parseArchiveAddress(text: string, settings: S3Settings): ArchiveAddress | string {
  if (isAbsolute(text)) return { folder: text }
  const [, bucket, prefix] = bucketPattern.exec(text) ?? []
  if (bucket === undefined) return 'must be an absolute path, or s3://bucket/prefix with letters, digits, -, _ and .'
  const { AWS_REGION: region, AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = settings
  if (accessKeyId === undefined || secretAccessKey === undefined)
    return 'names a bucket, so AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must be set'
  const sessionToken = settings.AWS_SESSION_TOKEN
  return {
    bucket,
    prefix: prefix === undefined ? '' : `${prefix}/`,
    endpoint: settings.KITH_ARCHIVE_ENDPOINT?.replace(/\/+$/, '') ?? `https://s3.${region}.amazonaws.com`,
    region,
    credentials: { accessKeyId, secretAccessKey, ...(sessionToken !== undefined && { sessionToken }) },
  }
}
