import { createLink } from '@tanstack/react-router'
import type { AnchorHTMLAttributes, Ref } from 'react'
import { Button as AriaButton, type ButtonProps as AriaButtonProps } from 'react-aria-components'
import styles from './button.module.css'

export type ButtonProps = Omit<AriaButtonProps, 'className' | 'style'> & {
  /** `primary` is the main action of a view, `danger` destroys data, `quiet` has no border. */
  look?: 'primary' | 'danger' | 'quiet'
  ref?: Ref<HTMLButtonElement>
}

/** A button. Without a `look` it is an ordinary action. */
export function Button({ look, ...props }: ButtonProps) {
  return <AriaButton {...props} className={look ? `${styles.button} ${styles[look]}` : styles.button} />
}

type AnchorProps = AnchorHTMLAttributes<HTMLAnchorElement> & { look?: 'primary'; ref?: Ref<HTMLAnchorElement> }

function Anchor({ look, ...props }: AnchorProps) {
  return <a {...props} className={look ? `${styles.button} ${styles[look]}` : styles.button} />
}

/** A link to a page of the console that looks like a button. */
export const LinkButton = createLink(Anchor)
