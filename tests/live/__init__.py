"""Tests of the recorder inside a training job."""
