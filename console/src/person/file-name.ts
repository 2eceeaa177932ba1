/** An identifier as a part of a file name. */
export const fileNameOf = (identifier: string): string => identifier.replaceAll(/[^\p{L}\p{N}._-]+/gu, '_').slice(0, 80)
