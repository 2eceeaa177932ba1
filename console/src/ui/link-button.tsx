import { createLink } from '@tanstack/react-router'
import type { AnchorHTMLAttributes, Ref } from 'react'
import styles from './button.module.css'

type AnchorProps = AnchorHTMLAttributes<HTMLAnchorElement> & { look?: 'primary'; ref?: Ref<HTMLAnchorElement> }

function Anchor({ look, ...props }: AnchorProps) {
  return <a {...props} className={look ? `${styles.button} ${styles[look]}` : styles.button} />
}

/** A link to a page of the console that looks like a button. */
export const LinkButton = createLink(Anchor)
