import type { Ref } from 'react'
import { Button as AriaButton, type ButtonProps as AriaButtonProps } from 'react-aria-components'
import styles from './button.module.css'

export type ButtonProps = Omit<AriaButtonProps, 'className' | 'style'> & {
  /** `primary` is the one main action of a view, `danger` destroys something, `quiet` has no border. */
  look?: 'primary' | 'danger' | 'quiet'
  ref?: Ref<HTMLButtonElement>
}

/** A button. Without a `look` it is an ordinary action. */
export function Button({ look, ...props }: ButtonProps) {
  return <AriaButton {...props} className={look ? `${styles.button} ${styles[look]}` : styles.button} />
}
