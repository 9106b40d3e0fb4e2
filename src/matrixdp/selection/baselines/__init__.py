"""The mechanisms that the papers compare with, each as its paper states it."""
